type t

type location =
  { file : string
  ; line : int
  ; start_char : int
  ; end_char : int
  ; func : string
  }

type info =
  { sample_rate : float
  ; word_size : int
  ; executable : string
  ; host : string
  ; runtime_params : string
  ; pid : int64
  ; initial_domain : int
  ; start_us : int64
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
      ; words : int
      ; samples : int
      ; heap : heap
      ; stack : int array
      ; depth : int
      ; common_prefix : int
      }
  | Promote of
      { obj : int
      ; domain : int
      }
  | Collect of
      { obj : int
      ; domain : int
      }

external open_file : string -> t = "statmem_ml_open"
external close : t -> unit = "statmem_ml_close"
external size_bytes : t -> int64 = "statmem_ml_size_bytes"

(* Tuple and record have the same shape. *)
external info : t -> info = "statmem_ml_info"
external n_streams : t -> int = "statmem_ml_n_streams"
external rewind : t -> bool -> unit = "statmem_ml_rewind"
external next : t -> int array -> bool = "statmem_ml_next" [@@noalloc]
external frames : t -> int array -> int -> unit = "statmem_ml_frames" [@@noalloc]
external location_array : t -> int -> location array = "statmem_ml_location"
external loss_array : t -> string array = "statmem_ml_losses"

let open_ ~filename = open_file filename
let location t number = Array.to_list (location_array t number)
let losses t = Array.to_list (loss_array t)

(* As in reader_stubs.c. *)
let f_kind = 0
let f_time_us = 1
let f_domain = 2
let f_object = 3
let f_length = 4
let f_samples = 5
let f_heap = 6
let f_frames = 7
let f_prefix = 8
let n_fields = 10

(* The last stack of each domain. *)
type buffer =
  { mutable stack : int array
  ; mutable depth : int
  }

let heap_of = function
  | 0 -> Minor
  | 1 -> Major
  | _ -> External

let room buffer depth =
  let have = Array.length buffer.stack in
  if depth > have
  then (
    let larger = Array.make (max depth (2 * have)) 0 in
    Array.blit buffer.stack 0 larger 0 have;
    buffer.stack <- larger)

(* A domain with several threads has several streams, each with a prefix of its own: compare. *)
let copy_comparing t buffer depth =
  let old = Array.sub buffer.stack 0 (min buffer.depth depth) in
  frames t buffer.stack 0;
  let n = Array.length old in
  let rec same i = if i < n && old.(i) = buffer.stack.(i) then same (i + 1) else i in
  same 0

let iter ?(stacks = true) t f =
  rewind t stacks;
  let one_stream = n_streams t = 1 in
  let buffers = Hashtbl.create 16 in
  (* The prefix of a stream is that of its last allocation, whichever domain made it. *)
  let buffer_of domain =
    let domain = if one_stream then 0 else domain in
    match Hashtbl.find_opt buffers domain with
    | Some b -> b
    | None ->
      let b = { stack = Array.make 64 0; depth = 0 } in
      Hashtbl.add buffers domain b;
      b
  in
  let fields = Array.make n_fields 0 in
  while next t fields do
    let obj = fields.(f_object)
    and domain = fields.(f_domain) in
    let event =
      match fields.(f_kind) with
      | 0 ->
        let depth = fields.(f_frames) in
        let buffer = buffer_of domain in
        room buffer depth;
        let common_prefix =
          if one_stream
          then (
            let prefix = fields.(f_prefix) in
            if prefix <= depth then frames t buffer.stack prefix;
            prefix)
          else copy_comparing t buffer depth
        in
        buffer.depth <- depth;
        Alloc
          { obj
          ; domain
          ; words = fields.(f_length)
          ; samples = fields.(f_samples)
          ; heap = heap_of fields.(f_heap)
          ; stack = buffer.stack
          ; depth
          ; common_prefix
          }
      | 1 -> Promote { obj; domain }
      | _ -> Collect { obj; domain }
    in
    f fields.(f_time_us) event
  done
