(* OCaml calls C, which calls OCaml, which calls C, which takes memory. *)
external grab : int -> int = "stub_grab"
external back : (int -> int) -> int -> int = "stub_back"
let rec down n = if n = 0 then grab 5000 else 1 + down (n-1)
let middle n = List.fold_left (fun a x -> a + back down x) 0 [n; n+1]
let () = print_int (middle 3 + middle 2)
