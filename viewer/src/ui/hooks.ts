import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, type Parameters, encode } from "../api";

export interface Answer<T> {
  data: T | null;
  /** A request is under way; `data` may still be the last answer. */
  busy: boolean;
  error: ApiError | null;
}

let pending = 0;
const watchers = new Set<(busy: boolean) => void>();

function count(change: number): void {
  pending += change;
  for (const w of watchers) w(pending > 0);
}

/** Whether any answer is being waited for. */
export function useBusy(): boolean {
  const [busy, setBusy] = useState(pending > 0);
  useEffect(() => {
    watchers.add(setBusy);
    return () => void watchers.delete(setBusy);
  }, []);
  return busy;
}

/** Asks the API; a newer question cancels the older. The last answer stays until the next one is there. */
export function useApi<T>(path: string | null, parameters: Parameters): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ data: null, busy: path !== null, error: null });
  const key = path === null ? "" : `${path}?${encode(parameters)}`;
  useEffect(() => {
    if (path === null) {
      setAnswer({ data: null, busy: false, error: null });
      return;
    }
    const abort = new AbortController();
    setAnswer((a) => ({ ...a, busy: true }));
    count(1);
    get<T>(path, parameters, abort.signal).then(
      (data) => setAnswer({ data, busy: false, error: null }),
      (reason: unknown) => {
        if (abort.signal.aborted) return;
        const error = reason instanceof ApiError ? reason : new ApiError("the server does not answer; start statmem view again", 0);
        setAnswer((a) => ({ data: a.data, busy: false, error }));
      },
    ).finally(() => count(-1));
    return () => abort.abort();
  }, [key]);
  return answer;
}

/** A value that follows with a delay: for what is being typed. */
export function useDelayed<T>(value: T, ms: number): T {
  const [delayed, setDelayed] = useState(value);
  const timer = useRef(0);
  useEffect(() => {
    timer.current = window.setTimeout(() => setDelayed(value), ms);
    return () => clearTimeout(timer.current);
  }, [value, ms]);
  return delayed;
}
