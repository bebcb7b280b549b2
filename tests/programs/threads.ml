(* Threads that switch inside one domain, each in a function of its own. *)
let rec build n = if n = 0 then [] else n :: build (n - 1)
let[@inline never] first_worker () =
  for _ = 1 to 2000 do ignore (Sys.opaque_identity (build 50)); if Random.int 20 = 0 then Thread.yield () done
let[@inline never] second_worker () =
  for _ = 1 to 2000 do ignore (Sys.opaque_identity (String.make 80 'x')); if Random.int 20 = 0 then Thread.yield () done
let () =
  let t = List.map (fun f -> Thread.create f ()) [ first_worker; second_worker; first_worker ] in
  List.iter Thread.join t;
  print_endline "joined"
