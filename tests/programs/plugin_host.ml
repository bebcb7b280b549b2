(* Loads a plugin and calls what it registered. *)
let () =
  Dynlink.loadfile Sys.argv.(1);
  Printf.printf "%d\n" (!Plugin_api.hook 2000)
