(* Promotion-heavy: deep folds, many minor collections, much that survives for a while. *)
module M = Map.Make (Int)
let rec deep n = if n = 0 then 0 else 1 + deep (n - 1) + List.length [ n ]
let () =
  let rounds = int_of_string Sys.argv.(1) in
  let m = ref M.empty in
  for i = 1 to rounds do
    m := M.add (i * 7919 mod 1000) (List.init 20 (fun x -> ref (x + i))) !m;
    if i mod 50 = 0 then Gc.minor ();
    if i mod 500 = 0 then ignore (Sys.opaque_identity (deep 3000))
  done;
  Gc.full_major ();
  Printf.printf "%d\n" (M.fold (fun k l s -> s + k + List.fold_left (fun a r -> a + !r) 0 l) !m 0)
