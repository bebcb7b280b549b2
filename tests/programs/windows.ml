(* Allocates a known number of words in a function of its own for each line that it reads, and says so. *)
let [@inline never] alpha i = Sys.opaque_identity (ref i)
let [@inline never] beta i = Sys.opaque_identity (ref i)
let [@inline never] gamma i = Sys.opaque_identity (ref i)
let kept = ref []

let () =
  try
    while true do
      let line = read_line () in
      let f = match line with "alpha" -> alpha | "beta" -> beta | _ -> gamma in
      for i = 1 to 10_000 do
        let r = f i in
        if i mod 10 = 0 then kept := r :: !kept
      done;
      if line = "beta" then (Gc.full_major (); kept := []; Gc.full_major ());
      print_endline line
    done
  with End_of_file -> print_endline (string_of_int (List.length !kept))
