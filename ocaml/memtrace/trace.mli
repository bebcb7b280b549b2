(** Traces as memtrace's library presents them. Files of memtrace (versions 1 to 3) and of statmem are read;
    memtrace's version 3 is written. *)

(** Microseconds since the Unix epoch. *)
module Timestamp : sig
  type t

  val now : unit -> t
  val of_int64 : int64 -> t
  val to_int64 : t -> int64

  (** Seconds, as in [Unix.gettimeofday]. *)
  val to_float : t -> float

  val of_float : float -> t
end

(** Microseconds since the start of a trace. *)
module Timedelta : sig
  type t

  val to_int64 : t -> int64
  val offset : Timestamp.t -> t -> Timestamp.t
end

module Location : sig
  type t =
    { filename : string
    ; line : int
    ; start_char : int
    ; end_char : int
    ; defname : string
    }

  val to_string : t -> string
  val unknown : t
end

(** A sampled block. *)
module Obj_id : sig
  type t = private int

  module Tbl : Hashtbl.SeededS with type key = t
end

module Domain_id : sig
  type t = private int

  val main_domain : t

  module Expert : sig
    val of_int : int -> t
  end
end

(** A return address, with all functions inlined there. *)
module Location_code : sig
  type t = private int

  module Tbl : Hashtbl.SeededS with type key = t

  module Expert : sig
    val of_int : int -> t
  end
end

module Allocation_source : sig
  type t =
    | Minor
    | Major
    | External
end

module Event : sig
  type t =
    | Alloc of
        { obj_id : Obj_id.t
        ; length : int  (** words without header *)
        ; domain : Domain_id.t
        ; nsamples : int
        ; source : Allocation_source.t
        ; backtrace_buffer : Location_code.t array
          (** from the outermost caller to the allocation; used again by later events *)
        ; backtrace_length : int
        ; common_prefix : int  (** so many entries are as in the last allocation of the domain *)
        }
    | Promote of Obj_id.t * Domain_id.t
    | Collect of Obj_id.t * Domain_id.t

  val domain : t -> Domain_id.t
  val to_string : (Location_code.t -> Location.t list) -> t -> string
end

module Info : sig
  type t =
    { sample_rate : float
    ; word_size : int
    ; executable_name : string
    ; host_name : string
    ; ocaml_runtime_params : string
    ; pid : Int64.t
    ; initial_domain : Domain_id.t
    ; start_time : Timestamp.t
    ; context : string option
    }
end

(** Functions raise [Failure] when writing fails. *)
module Writer : sig
  type t

  (** The process has forked: the child must not write. *)
  exception Pid_changed

  val create : Unix.file_descr -> ?getpid:(unit -> int64) -> Info.t -> t
  val domain : t -> Domain_id.t

  (** A writer for another domain into the same file; each may be used by a domain of its own. *)
  val for_domain : t -> domain:Domain_id.t -> t

  val put_alloc
    :  t
    -> Timestamp.t
    -> length:int
    -> nsamples:int
    -> source:Allocation_source.t
    -> callstack:Location_code.t array
    -> decode_callstack_entry:(Location_code.t -> Location.t list)
    -> Obj_id.t

  val put_alloc_with_raw_backtrace
    :  t
    -> Timestamp.t
    -> length:int
    -> nsamples:int
    -> source:Allocation_source.t
    -> callstack:Printexc.raw_backtrace
    -> Obj_id.t

  (** Leaves out the [drop_slots] innermost entries. *)
  val put_alloc_with_suffix_of_raw_backtrace
    :  t
    -> Timestamp.t
    -> length:int
    -> nsamples:int
    -> source:Allocation_source.t
    -> callstack:Printexc.raw_backtrace
    -> drop_slots:int
    -> Obj_id.t

  val put_collect : t -> Timestamp.t -> Obj_id.t -> unit
  val put_promote : t -> Timestamp.t -> Obj_id.t -> unit

  val put_event
    :  t
    -> decode_callstack_entry:(Location_code.t -> Location.t list)
    -> Timestamp.t
    -> Event.t
    -> unit

  val flush : t -> unit

  (** Flushes; the descriptor given to [create] stays open. *)
  val close : t -> unit

  module Multiplexed_domains : sig
    type t

    val create : Unix.file_descr -> ?getpid:(unit -> int64) -> Info.t -> t

    val put_event
      :  t
      -> decode_callstack_entry:(Location_code.t -> Location.t list)
      -> Timestamp.t
      -> Event.t
      -> unit

    val flush : t -> unit
  end
end

module Reader : sig
  type t

  val create : Unix.file_descr -> t
  val info : t -> Info.t
  val lookup_location_code : t -> Location_code.t -> Location.t list

  (** Events in time order over all domains. [parse_backtraces] (true): without, backtraces are empty, which is
      faster. *)
  val iter : t -> ?parse_backtraces:bool -> (Timedelta.t -> Event.t -> unit) -> unit

  val open_ : filename:string -> t
  val size_bytes : t -> int64
  val close : t -> unit

  (** What could not be read, complete after [iter]. *)
  val losses : t -> string list
end
