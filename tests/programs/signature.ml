(* Many short domains, a few at a time. Each allocates blocks of a size that only its own id gives, so that an event
   that is ascribed to another domain is recognised. Ends with the process's peak memory on stderr. *)
let[@inline never] signed id = Sys.opaque_identity (Array.make (10 + (id mod 97)) 0)

let body () =
  let id = (Domain.self () :> int) in
  for _ = 1 to 20 do
    ignore (signed id)
  done;
  id

let () =
  let total = int_of_string Sys.argv.(1) and together = 8 in
  let sum = ref 0 in
  for _ = 1 to total / together do
    List.iter (fun d -> sum := !sum + Domain.join d) (List.init together (fun _ -> Domain.spawn body))
  done;
  Printf.printf "%d\n" !sum;
  let status = open_in "/proc/self/status" in
  try
    while true do
      let line = input_line status in
      if String.length line > 6 && String.sub line 0 6 = "VmHWM:" then prerr_endline line
    done
  with End_of_file -> ()
