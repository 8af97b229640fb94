"""Text forms of rates and ratios."""


def rate_text(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"{rate:,.0f}" if rate < 1e6 else f"{rate / 1e6:,.2f} M"


def ratio_text(ratio: float | None, goal: float | None = None) -> str:
    """Format a ratio, with `!` if it is below its goal."""
    if ratio is None:
        return "-"
    text = f"{ratio:,.0f}x" if ratio >= 20 else f"{ratio:.2f}x"
    return f"{text} !" if goal is not None and ratio < goal else text


def below(value: float, goal: float, text: str) -> str:
    """Return the text, with `!` if the value is not below its goal."""
    return text if value < goal else f"{text} !"
