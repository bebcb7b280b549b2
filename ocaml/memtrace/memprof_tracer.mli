(** Traces into a {!Trace.Writer} of one's own, with callbacks in OCaml. {!Memtrace.start_tracing} costs far less. *)

type t

(** At most one at a time. [report_exn] is told what a callback could not do, after which tracing has ended.
    @raise Failure when Gc.Memprof is in use or not available. *)
val start : ?report_exn:(exn -> unit) -> sampling_rate:float -> Trace.Writer.t -> t

val stop : t -> unit
val active_tracer : unit -> t option
val current_domain : unit -> Trace.Domain_id.t

type ext_token [@@immediate]

val ext_alloc : bytes:int -> ext_token option
val ext_free : ext_token -> unit
