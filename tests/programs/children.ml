(* Starts other programs: by exec, by the shell, in a pipeline, or by Unix.create_process. *)
let rec build n = if n = 0 then [] else n :: build (n - 1)
let () =
  for _ = 1 to 500 do ignore (Sys.opaque_identity (build 100)) done;
  let other = Sys.argv.(2) in
  match Sys.argv.(1) with
  | "exec" -> Unix.execv other [| other; "50" |]
  | "system" -> exit (Sys.command (Filename.quote other ^ " 50"))
  | "pipeline" -> exit (Sys.command (Filename.quote other ^ " 50 | " ^ "cat"))
  | "spawn" ->
      let pid = Unix.create_process other [| other; "50" |] Unix.stdin Unix.stdout Unix.stderr in
      ignore (Unix.waitpid [] pid);
      print_endline "spawned"
  | _ -> exit 2
