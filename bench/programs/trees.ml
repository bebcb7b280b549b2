(* The same work for each of N workers: builds and folds small trees, and keeps one of every sixteen for a while.
   Allocation is nearly all it does, which is the worst case for a profiler of allocations.

     trees WORKERS ROUNDS

   Prints wall-clock and processor time in ns of the whole. `Workers.run` spawns domains on OCaml 5 (workers_5.ml) and
   does the work one after another on OCaml 4 (workers_4.ml). *)

type tree = Leaf | Node of tree * int * tree

let rec build depth n = if depth = 0 then Leaf else Node (build (depth - 1) (2 * n), n, build (depth - 1) ((2 * n) + 1))
let rec sum = function Leaf -> 0 | Node (l, n, r) -> sum l + n + sum r

let work rounds =
  let kept = Array.make 64 Leaf and total = ref 0 in
  for round = 1 to rounds do
    let t = build 9 round in
    total := !total + sum t;
    if round land 15 = 0 then kept.((round lsr 4) land 63) <- t
  done;
  ignore (Sys.opaque_identity (kept, !total))

let () =
  let workers = int_of_string Sys.argv.(1) and rounds = int_of_string Sys.argv.(2) in
  let wall = Unix.gettimeofday () and cpu = Sys.time () in
  Workers.run workers (fun () -> work rounds);
  Printf.printf "%.0f %.0f\n" ((Unix.gettimeofday () -. wall) *. 1e9) ((Sys.time () -. cpu) *. 1e9)
