import type { TraceInfo } from "../api";
import type { State } from "../state";

export interface ViewProps {
  state: State;
  info: TraceInfo;
  traces: TraceInfo[];
  /** Changes the state; a step that can be undone unless `replace`. */
  go: (change: Partial<State>, replace?: boolean) => void;
}

/** What most requests say of the rows they are about. */
export function rows(state: State, info: TraceInfo) {
  return { trace: state.trace || undefined, filter: state.filter, r: info.revision > 1 ? info.revision : undefined };
}
