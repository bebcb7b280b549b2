(* OCaml 5: a domain for each worker; the first works too. *)
let run workers work =
  let others = List.init (workers - 1) (fun _ -> Domain.spawn work) in
  work ();
  List.iter Domain.join others
