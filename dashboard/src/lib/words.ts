// Splits a line into words as a shell does: quotes keep spaces, and a backslash keeps the next character.
export function shellWords(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!;
    if (character === "\\" && quote !== "'" && at + 1 < line.length) {
      word = (word ?? "") + line[++at];
    } else if (quote ? character === quote : character === "'" || character === '"') {
      quote = quote ? "" : character;
      word ??= "";
    } else if (!quote && /\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + character;
    }
  }
  if (quote) throw new Error(`The quote ${quote} in the arguments has no end.`);
  if (word !== undefined) words.push(word);
  return words;
}
