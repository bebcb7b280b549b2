(** Records this program's memory: where it is allocated, promoted and freed, in every domain and thread.

    {[
      let () = Statmem.start ~filename:"server.stm" ()
    ]}

    Read the file with the [statmem] command, or with {!Reader}. Nothing here allocates on the OCaml heap while
    events are recorded, except where it says so. *)

(** A recording. There is one at a time in a process. *)
type t

(** Why a recording could not start: one is active, the file cannot be opened, Gc.Memprof is in use or not in
    this version of OCaml (5.0 to 5.2). *)
exception Cannot_start of string

(** 1e-4: one sample in 10 000 words. *)
val default_sampling_rate : float

(** Begins to record into [filename] ([%p] becomes the process id).

    [sampling_rate] is the probability that a word is sampled, in (0, 1]. [depth] is the number of frames kept of a
    call stack (1024); of deeper ones the middle is cut. [context] is a note in the trace's header.

    OCaml 5: recorded are this domain and those spawned afterwards by it or its children. Domains that run
    already are not: start early.
    @raise Cannot_start
    @raise Invalid_argument when the rate is out of range. *)
val start
  :  ?context:string
  -> ?sampling_rate:float
  -> ?rate_origin:[ `Default | `Argument | `Environment ]
  -> ?depth:int
  -> filename:string
  -> unit
  -> t

(** Ends the recording and closes its file; from any domain or thread. Nothing happens when it has ended already.
    It ends by itself when the program exits. *)
val stop : t -> unit

(** Is this recording active? *)
val active : t -> bool

(** The active recording. *)
val current : unit -> t option

(** Events that could not be kept in the active recording; they are counted in the trace. *)
val discarded : unit -> int

(** The calling domain's number, as in the trace: [Domain.self], 0 on OCaml 4. *)
val current_domain : unit -> int

(** Takes a variable out of the environment, for this process and its children. *)
val unsetenv : string -> unit

(** A note in the trace, with the time. *)
val mark : string -> unit

(** Names the calling thread in the trace. *)
val thread_name : string -> unit

(** Memory that OCaml does not see, such as a C library's. Sampled like OCaml's own; from any domain and thread. *)
module External : sig
  type token [@@immediate]

  (** Reports an allocation. Mostly [None], in a few nanoseconds; [Some token] when it was sampled: pass it
      to {!free} when the memory is freed. Allocates only when sampled. *)
  val alloc : bytes:int -> token option

  val free : token -> unit
end

module Reader = Reader

(** Gc.Memprof in one form for all versions; for {!Memtrace}'s [Memprof_tracer]. *)
module Memprof = Memprof

(** Writes traces in memtrace's format 3; for {!Memtrace}'s [Trace.Writer]. *)
module Memtrace_writer = Memtrace_writer
