(* Uses Gc.Memprof itself, at rate 1, and counts. *)
let rec build n = if n = 0 then [] else n :: build (n - 1)
let () =
  for _ = 1 to 200 do ignore (Sys.opaque_identity (build 100)) done;
  let n = ref 0 and dead = ref 0 in
  let tracker =
    { Gc.Memprof.null_tracker with
      alloc_minor = (fun a -> n := !n + a.Gc.Memprof.n_samples; Some ());
      dealloc_minor = (fun () -> incr dead) }
  in
  let _profile = Gc.Memprof.start ~sampling_rate:1.0 tracker in
  for _ = 1 to 100 do ignore (Sys.opaque_identity (build 100)) done;
  Gc.Memprof.stop ();
  Printf.printf "%d samples\n" !n
