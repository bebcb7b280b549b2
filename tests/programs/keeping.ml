(* Sites that keep memory in different ways: only the first is a leak. *)
let memo : (int * int, int list) Hashtbl.t = Hashtbl.create 16
let ring = Array.make 1000 []
let [@inline never] remember i = Hashtbl.replace memo (i, i + 1) [ i ] (* keys are never met again *)
let [@inline never] replace i = ring.(i mod 1000) <- [ i; i ]
let [@inline never] fill () = List.init 20_000 (fun i -> ref i)
let [@inline never] drop i = ignore (Sys.opaque_identity (ref i))

let () =
  let once = fill () in
  for i = 1 to 400_000 do
    remember i;
    replace i;
    drop i
  done;
  Gc.full_major ();
  print_int (Hashtbl.length memo + List.length once + List.length ring.(0))
