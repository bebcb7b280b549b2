(* 20 lists of 100 cells, each cell three words with its header. *)
let[@inline never] rec build n = if n = 0 then [] else n :: build (n - 1)
let () =
  for _ = 1 to 20 do ignore (Sys.opaque_identity (build 100)) done;
  print_endline "made"
