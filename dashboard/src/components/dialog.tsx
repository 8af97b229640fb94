// Questions before an action, its progress and its result.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, token } from "../api/client";
import { useStore } from "../lib/store";
import { Failed } from "./basics";
import { Icon } from "./icon";

export function Dialog({ title, children, onClose }: { title: string; children: ComponentChildren; onClose: () => void }) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = place.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={place}
      class="dialog"
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === place.current && onClose()}
    >
      <div class="dialog-inner">
        <header>
          <h2>{title}</h2>
          <button type="button" class="icon-button" onClick={onClose} aria-label="Close">
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A dialog that runs an action. An error stays in the dialog, and a missing token is asked for. */
export function ActionDialog({ title, label, danger, children, act, onClose }: {
  title: string;
  label: string;
  danger?: boolean;
  children: ComponentChildren;
  act: () => Promise<void>;
  onClose: () => void;
}) {
  const [running, setRunning] = useState(false);
  const [error, setError] = useState<ApiError>();
  const currentToken = useStore(token);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setRunning(true);
    setError(undefined);
    try {
      await act();
      onClose();
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError(0, String(failure)));
      setRunning(false);
    }
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <div class="dialog-body">{children}</div>
        {error && <Failed error={error} />}
        {(error?.needsToken || currentToken) && <TokenField />}
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" class={`button ${danger ? "danger" : "primary"}`} disabled={running}>
            {running ? "Working …" : label}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

export function TokenField() {
  const current = useStore(token);
  return (
    <label class="field">
      <span>Token</span>
      <input
        type="password"
        autocomplete="off"
        value={current}
        onInput={(event) => token.set(event.currentTarget.value.trim())}
        placeholder="The token of the server"
      />
      <small><code>firesteel session list --token</code> prints that of a session. This tab remembers it until it is closed.</small>
    </label>
  );
}
