(* Allocates, forks; the child allocates far more. *)
let rec build n = if n = 0 then [] else n :: build (n - 1)
let work n =
  let sum = ref 0 in
  for _ = 1 to n do sum := !sum + List.length (Sys.opaque_identity (build 100)) done;
  !sum
let () =
  let a = work 1000 in
  match Unix.fork () with
  | 0 ->
      let b = work 20000 in
      Printf.printf "child %d\n" b;
      exit 7
  | pid ->
      let _, status = Unix.waitpid [] pid in
      let c = work 1000 in
      Printf.printf "parent %d %d %d\n" a c
        (match status with Unix.WEXITED n -> n | _ -> -1)
