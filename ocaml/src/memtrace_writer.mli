(** Writes traces in memtrace's format 3 to a file descriptor. Times are microseconds since the Unix epoch. Several domains
    may write at once: a lock lies around each call. *)

type t

(** @raise Failure when the header cannot be written. *)
val create
  :  Unix.file_descr
  -> sample_rate:float
  -> word_size:int
  -> executable:string
  -> host:string
  -> runtime_params:string
  -> pid:int64
  -> initial_domain:int
  -> start_us:int64
  -> context:string option
  -> t

(** Tells the locations of a code, outermost first: before the first allocation that has it. *)
val add_location : t -> int -> Reader.location list -> unit

val knows_location : t -> int -> bool

(** [put_alloc t ~domain time ~length ~samples ~heap codes n]: the first [n] codes are the stack, outermost first.
    Returns the object's id.
    All of the functions below raise Failure when writing fails. *)
val put_alloc
  :  t
  -> domain:int
  -> int64
  -> length:int
  -> samples:int
  -> heap:Reader.heap
  -> int array
  -> int
  -> int

val put_promote : t -> domain:int -> int64 -> int -> unit
val put_collect : t -> domain:int -> int64 -> int -> unit
val flush : t -> unit

(** Flushes; the descriptor stays open. *)
val close : t -> unit
