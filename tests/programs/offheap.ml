(* Memory outside of the OCaml heap, made in the way that the first argument names. *)
external keep : int -> unit = "stub_keep"
external path : int -> bool -> unit = "stub_path"
external stat : int -> unit = "stub_stat"
type custom
external custom : int -> custom = "stub_custom"

let bigarray n = Bigarray.Array1.create Bigarray.char Bigarray.c_layout n

let [@inline never] parent n =
  let a = bigarray n in
  Bigarray.Array1.fill a 'x';
  a

let kept = ref []
let strings = ref []

let () =
  (match Sys.argv.(1) with
   | "sub" ->
     (* A13: only a part of it is kept. A28: many parts *)
     let a = parent (1 lsl 20) in
     for i = 1 to 1000 do kept := Bigarray.Array1.sub a i 10 :: !kept done
   | "loop" -> for _ = 1 to 50 do ignore (Sys.opaque_identity (parent 8_000_000)) done (* A15 *)
   | "keep" -> for _ = 1 to 1000 do keep 10_000 done
   | "path" -> for i = 1 to 2000 do path 5_000 (i mod 10 = 0) done
   | "burst" -> (* A18 *)
     for i = 1 to 1000 do path 9_000 false; ignore i done
   | "stat" -> for _ = 1 to 1000 do stat 20_000 done
   | "custom" -> for _ = 1 to 500 do ignore (Sys.opaque_identity (custom 30_000)) done
   | "heap" ->
     let l = ref [] in
     for i = 1 to 300 do l := Bytes.create 200_000 :: !l; ignore i done;
     print_int (List.length !l)
   | "outside" -> for _ = 1 to 4000 do keep 10_000 done
   | "filled" ->
     for _ = 1 to 200 do strings := Bytes.make 200_000 'x' :: !strings done
   | s -> failwith s);
  Gc.full_major ();
  print_endline (Sys.argv.(1) ^ string_of_int (List.length !kept + List.length !strings))
