(* Becomes a daemon and works on. *)
let rec build n = if n = 0 then [] else n :: build (n - 1)
let () =
  ignore (Sys.opaque_identity (build 1000));
  match Unix.fork () with
  | 0 ->
      ignore (Unix.setsid ());
      for _ = 1 to 5000 do ignore (Sys.opaque_identity (build 100)) done;
      let c = open_out Sys.argv.(1) in
      output_string c "done\n";
      close_out c
  | _ -> ()
