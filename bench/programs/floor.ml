(* One loop that allocates, at a given stack depth, alone or under a Memprof tracker whose callbacks do nothing:

     floor DEPTH BLOCKS none|null RATE

   Prints the loop's processor time in ns and the words it allocated. With `none` the program knows nothing of
   Memprof: that is the one to record. The difference of `null` and `none` is the price that OCaml's runtime sets for
   a sample, whoever takes it: capturing the stack, calling back, tracking the block. *)

external alloc : Gc.Memprof.allocation -> int option = "floor_alloc" [@@noalloc]
external promote : int -> int option = "floor_promote" [@@noalloc]
external dealloc : int -> unit = "floor_dealloc" [@@noalloc]
external now_ns : unit -> (int[@untagged]) = "floor_now_ns_byte" "floor_now_ns" [@@noalloc]

let tracker =
  { Gc.Memprof.alloc_minor = (fun info -> alloc info);
    alloc_major = (fun info -> alloc info);
    promote = (fun id -> promote id);
    dealloc_minor = (fun id -> dealloc id);
    dealloc_major = (fun id -> dealloc id) }

let sink = ref []

let work blocks =
  for i = 1 to blocks do
    sink := Sys.opaque_identity [ i ]
  done

(* Not a tail call: each level is a frame. *)
let rec at_depth depth blocks = if depth = 0 then (work blocks; 0) else 1 + at_depth (depth - 1) blocks

let () =
  let depth = int_of_string Sys.argv.(1) and blocks = int_of_string Sys.argv.(2) in
  if Sys.argv.(3) = "null" then
    ignore (Gc.Memprof.start ~sampling_rate:(float_of_string Sys.argv.(4)) ~callstack_size:max_int tracker);
  ignore (at_depth depth (blocks / 10));
  let before = now_ns () in
  ignore (at_depth depth blocks);
  Printf.printf "%d %d\n" (now_ns () - before) (blocks * 3)
