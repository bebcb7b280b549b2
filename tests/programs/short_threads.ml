(* 200 threads that live 10 ms each; every one allocates blocks of a size of its own. *)
let[@inline never] signed i = Sys.opaque_identity (Array.make (2 + i) 0)

let () =
  let body i =
    for _ = 1 to 10 do
      ignore (signed i);
      Thread.delay 0.001
    done
  in
  for round = 0 to 9 do
    List.iter Thread.join (List.init 20 (fun j -> Thread.create body ((20 * round) + j)))
  done;
  print_endline "200"
