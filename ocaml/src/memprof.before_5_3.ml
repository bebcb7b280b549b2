type profile = unit

let start ~sampling_rate ~callstack_size tracker =
  Gc.Memprof.start ~sampling_rate ~callstack_size tracker

let stop () = Gc.Memprof.stop ()
let discard () = ()
