(* The part of Gc.Memprof that differs between versions. *)

type profile

val start
  :  sampling_rate:float
  -> callstack_size:int
  -> ('minor, 'major) Gc.Memprof.tracker
  -> profile

val stop : unit -> unit
val discard : profile -> unit
