type profile = Gc.Memprof.t

let start ~sampling_rate ~callstack_size tracker =
  Gc.Memprof.start ~sampling_rate ~callstack_size tracker

let stop () = Gc.Memprof.stop ()

(* Fails when some domain still samples with it: then its callbacks go on to do nothing. *)
let discard profile = try Gc.Memprof.discard profile with Failure _ -> ()
