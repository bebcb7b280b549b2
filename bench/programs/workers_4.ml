(* OCaml 4 has one domain: the same amount of work, one after another. *)
let run workers work =
  for _ = 1 to workers do
    work ()
  done
