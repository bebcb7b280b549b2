(* Prints what a program can see of its environment. *)
let () =
  Array.iter print_endline (Unix.environment ());
  Array.iter print_endline Sys.argv;
  exit 5
