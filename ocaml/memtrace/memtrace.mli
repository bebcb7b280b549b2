(** memtrace's interface: a program written for that library compiles unchanged with [statmem.memtrace] in its place,
    and records all domains and threads, into a trace that the [statmem] command reads
    ([statmem convert TRACE OUT.ctf] makes it one of memtrace's). *)

(** Begins to trace when the variable MEMTRACE is set and not empty, into the file that it names ([%p] becomes the
    process id), up to the end of the program. The variable is then removed, so that children are not traced.

    The rate is MEMTRACE_RATE if set, else [sampling_rate], else {!default_sampling_rate}; it lies in (0, 1]. The
    trace's header says which it was.

    When tracing cannot start, one line on stderr says why and the program goes on. With STATMEM_RAISE=1 in the
    environment, [Failure] is raised instead.

    [if_started]: what to do when tracing is on already: nothing ([`Ignore], the default) or [`Fail].
    @raise Invalid_argument when MEMTRACE_RATE is no number in (0, 1]. *)
val trace_if_requested
  :  ?if_started:[ `Fail | `Ignore ]
  -> ?context:string
  -> ?sampling_rate:float
  -> unit
  -> unit

type tracer

(** One at a time.
    @raise Failure when tracing cannot start. *)
val start_tracing
  :  context:string option
  -> sampling_rate:float
  -> filename:string
  -> tracer

(** From any domain; nothing happens when it has stopped. *)
val stop_tracing : tracer -> unit

val active_tracer : unit -> tracer option
val currently_tracing : unit -> bool

(** 1e-6 *)
val default_sampling_rate : float

module Trace = Trace
module Memprof_tracer = Memprof_tracer

(** Memory that OCaml does not see; from any domain and thread. *)
module External : sig
  type token [@@immediate]

  (** Mostly [None], in a few nanoseconds; [Some token] when the allocation was sampled: pass it to [free] when the
      memory is freed. *)
  val alloc : bytes:int -> token option

  val free : token -> unit
end

module Geometric_sampler = Geometric_sampler
