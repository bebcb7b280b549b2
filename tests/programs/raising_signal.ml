(* A signal handler that raises in the middle of an allocation-heavy loop, many times. *)
exception Tick
let rec build n = if n = 0 then [] else n :: build (n - 1)
let ticks = ref 0

(* The handler raises only where its exception is caught. *)
let inside = ref false
let () =
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> if !inside then begin inside := false; raise Tick end));
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.002; it_value = 0.002 });
  while !ticks < 200 do
    try inside := true; while true do ignore (Sys.opaque_identity (build 100)) done with Tick -> incr ticks
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  Printf.printf "%d ticks\n" !ticks
