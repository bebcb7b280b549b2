(* Ends in the way that its argument names, after some allocations. *)
let rec build n = if n = 0 then [] else n :: build (n - 1)
let () =
  for _ = 1 to 2000 do ignore (Sys.opaque_identity (build 100)) done;
  print_string "output before the end\n";
  flush stdout;
  match Sys.argv.(1) with
  | "exit3" -> exit 3
  | "exception" -> failwith "uncaught"
  | "kill" -> Unix.kill (Unix.getpid ()) Sys.sigkill; Unix.sleep 10
  | "segv" -> Unix.kill (Unix.getpid ()) Sys.sigsegv; Unix.sleep 10
  | "term" -> Unix.kill (Unix.getpid ()) Sys.sigterm; Unix.sleep 10
  | "stack" -> let rec f n = 1 + f (n + 1) in print_int (f 0)
  | "_exit" -> Unix._exit 4
  | "sleep" -> Unix.sleepf (float_of_string Sys.argv.(2)); for _ = 1 to 2000 do ignore (Sys.opaque_identity (build 100)) done
  | _ -> ()
