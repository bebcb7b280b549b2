(* A known amount of work of every kind: small blocks, closures, strings, floats, arrays in the
   major heap, data that survives. N scales it. *)
let rec build n = if n = 0 then [] else (n, string_of_int n) :: build (n - 1)

let kept = ref []

let round i =
  let l = build 200 in
  let a = Array.make (300 + (i land 7)) l in
  let s = Bytes.create 4096 in
  Bytes.fill s 0 4096 'x';
  if i mod 10 = 0 then kept := (l, a, s) :: !kept;
  List.fold_left (fun sum (x, t) -> sum + x + String.length t) 0 l

let () =
  let n = int_of_string Sys.argv.(1) in
  let sum = ref 0 in
  for i = 1 to n do
    sum := !sum + round i
  done;
  let floats = List.init n (fun i -> float_of_int i *. 1.5) in
  Printf.printf "%d %d %.1f\n" !sum (List.length !kept) (List.fold_left ( +. ) 0. floats)
