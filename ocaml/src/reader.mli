(** Reads traces: statmem's own and memtrace's, of every version, damaged ones as far as possible. *)

type t

type location =
  { file : string
  ; line : int
  ; start_char : int
  ; end_char : int
  ; func : string
  }

type info =
  { sample_rate : float  (** 0 when unknown *)
  ; word_size : int  (** in bits *)
  ; executable : string
  ; host : string
  ; runtime_params : string
  ; pid : int64
  ; initial_domain : int
  ; start_us : int64  (** microseconds since the Unix epoch *)
  ; context : string option
  }

type heap =
  | Minor
  | Major
  | External

type event =
  | Alloc of
      { obj : int
      ; domain : int
      ; words : int  (** without header *)
      ; samples : int
      ; heap : heap
      ; stack : int array
        (** location numbers, outermost caller first. The array is used again by later events: copy what you
            keep. Only the first [depth] are the stack. *)
      ; depth : int
      ; common_prefix : int  (** so many frames are as in the domain's last allocation *)
      }
  | Promote of
      { obj : int
      ; domain : int
      }
  | Collect of
      { obj : int
      ; domain : int
      }

(** @raise Failure with a message on what is wrong and where. *)
val open_ : filename:string -> t

val close : t -> unit
val info : t -> info
val size_bytes : t -> int64

(** Events in time order over all domains; the time is in microseconds since the start. *)
val iter : ?stacks:bool -> t -> (int -> event -> unit) -> unit

(** The source locations of a location number: the outermost of an inlined group first; empty when nothing is known.
    @raise Not_found when the trace has no such number. *)
val location : t -> int -> location list

(** What could not be read, one sentence each; complete after {!iter}. *)
val losses : t -> string list
