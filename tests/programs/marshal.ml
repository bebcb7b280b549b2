(* Allocates through unmarshalling and through custom blocks. *)
let () =
  let l = List.init 5000 (fun i -> (i, string_of_int i)) in
  let s = Marshal.to_string l [] in
  let n = ref 0 in
  for _ = 1 to 20 do n := !n + List.length (Marshal.from_string s 0 : (int * string) list) done;
  for _ = 1 to 200 do ignore (Sys.opaque_identity (Bigarray.Array1.create Bigarray.char Bigarray.c_layout 100000)) done;
  Printf.printf "%d\n" !n
