(* Callbacks are closures over C primitives that neither allocate nor poll: no signal handler, thread switch or
   exception of the program can come between. The runtime reads the answer `Some token` at once, so it may stand
   in memory of the primitive's own. *)

external c_start : string -> float -> int -> string option -> string -> int -> string
  = "statmem_ml_start_byte" "statmem_ml_start"

external callstack_size : int -> int = "statmem_ml_callstack_size" [@@noalloc]
external c_stop : unit -> unit = "statmem_ml_stop"
external c_stop_at_exit : unit -> unit = "statmem_ml_stop_at_exit"
external c_active : unit -> bool = "statmem_ml_active" [@@noalloc]
external generation : unit -> int = "statmem_ml_generation" [@@noalloc]
external discarded : unit -> int = "statmem_ml_discarded" [@@noalloc]
external current_domain : unit -> int = "statmem_ml_domain" [@@noalloc]
external unsetenv : string -> unit = "statmem_ml_unsetenv"
external mark : string -> unit = "statmem_ml_mark" [@@noalloc]
external thread_name : string -> unit = "statmem_ml_thread_name" [@@noalloc]
external c_alloc_minor : Gc.Memprof.allocation -> int option = "statmem_ml_alloc_minor" [@@noalloc]
external c_alloc_major : Gc.Memprof.allocation -> int option = "statmem_ml_alloc_major" [@@noalloc]
external c_promote : int -> int option = "statmem_ml_promote" [@@noalloc]
external c_dealloc : int -> unit = "statmem_ml_dealloc" [@@noalloc]

let tracker =
  { Gc.Memprof.alloc_minor = (fun info -> c_alloc_minor info)
  ; alloc_major = (fun info -> c_alloc_major info)
  ; promote = (fun token -> c_promote token)
  ; dealloc_minor = (fun token -> c_dealloc token)
  ; dealloc_major = (fun token -> c_dealloc token)
  }

(* [generation] is the recorder's: two recordings never share one until it wraps, and an old one is over. *)
type t =
  { generation : int
  ; profile : Memprof.profile
  ; rate : float
  }

exception Cannot_start of string

let () =
  Printexc.register_printer (function
    | Cannot_start why -> Some ("Statmem.Cannot_start: " ^ why)
    | _ -> None)

let default_sampling_rate = 1e-4

(* A profile that [stop], called on a domain that does not take part in it, could not end: its rate. *)
let unstopped : float option ref = ref None
let last : t option ref = ref None
let at_exit_registered = ref false
let active t = t.generation = generation () && c_active ()

let current () =
  match !last with
  | Some t when active t -> Some t
  | _ -> None

(* OCaml 5 refuses on a domain that does not sample; the recorder drops what the others still deliver, and the next
   [start] mends it. *)
let stop_profile profile rate =
  (try Memprof.stop () with Failure _ -> unstopped := Some rate);
  Memprof.discard profile

let start_profile rate depth =
  let start () = Memprof.start ~sampling_rate:rate ~callstack_size:(callstack_size depth) tracker in
  match !unstopped with
  | None -> start ()
  | Some old ->
    (match Memprof.stop () with
     | () -> unstopped := None
     | exception Failure _ when old = rate -> ()
     | exception Failure _ ->
       failwith
         "another domain still samples at another rate: stop and start on the domain that started");
    start ()

let memprof_reason = function
  | Failure why when Sys.ocaml_version >= "5.0" && Sys.ocaml_version < "5.3" ->
    "OCaml " ^ Sys.ocaml_version ^ " has no Gc.Memprof (" ^ why ^ "); 4.11 to 4.14 and 5.3 have it"
  | Failure why -> "Gc.Memprof: " ^ why
  | e -> Printexc.to_string e

(* The profile is started first: should the runtime refuse, an existing file stays as it is. What is sampled
   before the recorder runs is dropped by its callbacks. *)
let start
  ?context
  ?sampling_rate
  ?rate_origin
  ?(depth = 1024)
  ~filename
  ()
  =
  let rate = Option.value sampling_rate ~default:default_sampling_rate in
  if not (rate > 0. && rate <= 1.)
  then invalid_arg "Statmem.start: the sampling rate must lie in (0, 1]";
  let origin =
    match rate_origin, sampling_rate with
    | Some `Environment, _ -> 3
    | Some `Argument, _ | None, Some _ -> 2
    | Some `Default, _ | None, None -> 1
  in
  let depth = min 32768 (max 2 depth) in
  if c_active () then raise (Cannot_start "a recording is active already");
  let profile =
    try start_profile rate depth with
    | e -> raise (Cannot_start (memprof_reason e))
  in
  match c_start filename rate origin context (Sys.runtime_parameters ()) depth with
  | "" ->
    let t = { generation = generation (); profile; rate } in
    last := Some t;
    if not !at_exit_registered
    then (
      at_exit_registered := true;
      at_exit c_stop_at_exit);
    t
  | why ->
    stop_profile profile rate;
    raise (Cannot_start why)

let stop t =
  if active t
  then (
    c_stop ();
    stop_profile t.profile t.rate)

module External = struct
  type token = int

  external sample : (int[@untagged]) -> (int[@untagged])
    = "statmem_ml_sample_byte" "statmem_ml_sample"
    [@@noalloc]

  external c_alloc : int -> int -> Printexc.raw_backtrace -> int = "statmem_ml_ext_alloc" [@@noalloc]
  external free : token -> unit = "statmem_ml_ext_free" [@@noalloc]

  (* Its own frame is the only one of ours in the stack, and the innermost: [alloc] calls it in tail position. *)
  let[@inline never] sampled words samples =
    match c_alloc words samples (Printexc.get_callstack 8192) with
    | 0 -> None
    | token -> Some token

  let alloc ~bytes =
    let words = (bytes + 7) / 8 in
    let samples = sample words in
    if samples = 0 then None else sampled words samples
end

module Reader = Reader
module Memprof = Memprof
module Memtrace_writer = Memtrace_writer
