(* One domain makes garbage, another one only waits. *)
let () =
  let stop = Atomic.make false in
  let idle = Domain.spawn (fun () -> while not (Atomic.get stop) do Domain.cpu_relax () done) in
  let busy =
    Domain.spawn (fun () -> for _ = 1 to 2000 do ignore (Sys.opaque_identity (Bytes.create 65536)) done)
  in
  Domain.join busy;
  Atomic.set stop true;
  Domain.join idle
