(* Stacks of OCaml and C frames in every order. *)
external check : unit -> int = "stub_check"
external noalloc : unit -> int = "stub_noalloc" [@@noalloc]
external untagged : (int[@untagged]) -> (int[@untagged]) = "stub_untagged" "stub_untagged_native" [@@noalloc]
external many : int -> int -> int -> int -> int -> int -> int -> int -> int = "stub_many_bytecode" "stub_many"
external callback : (int -> int) -> int -> int = "stub_callback"
external callback_exn : (int -> int) -> int -> int = "stub_callback_exn"
external alarms : bool -> unit = "stub_alarms"
external raise_signal : unit -> unit = "stub_raise_signal"
external result : int -> int = "stub_result"

let deepest = ref 0
let seen n = if n > !deepest then deepest := n

let rec down n = if n = 0 then (seen (check ()); seen (noalloc ()); ignore (untagged 3); ignore (many 1 2 3 4 5 6 7 8); 0)
  else 1 + down (n - 1)

(* OCaml, C, OCaml, C ... *)
let rec zigzag n = if n = 0 then down 3 else callback (fun k -> 1 + zigzag (k - 1)) n

exception Stop

let rec throwing n = if n = 0 then raise Stop else 1 + callback throwing (n - 1)

let with_list () = List.fold_left (fun a x -> a + x + (if x = 3 then check () else 0)) 0 [1; 2; 3; 4]
let with_sort () =
  let a = Array.init 20 (fun i -> (i * 7) mod 20) in
  Array.sort (fun x y -> if x = 3 && y = 5 then ignore (check ()); compare x y) a;
  a.(0)
let with_finaliser () =
  Gc.finalise (fun _ -> ignore (check ())) (ref 1);
  Gc.full_major ()

let basics () =
  ignore (down 0);
  ignore (down 100);
  ignore (zigzag 5);
  ignore (callback_exn throwing 4);
  ignore (with_list ());
  ignore (with_sort ());
  with_finaliser ();
  for i = 1 to 20 do raise_signal (); ignore (Sys.opaque_identity (Array.make i 0)) done

let () =
  alarms (Sys.ocaml_version >= "5");
  basics ();
  More.run basics zigzag down;
  Gc.compact ();
  basics ();
  if !deepest < 100 then (Printf.printf "deepest %d\n" !deepest; exit 3);
  exit (result 80)
