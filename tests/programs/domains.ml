(* N domains that each allocate the same amount at the same time; each tells its own id and how many words it
   allocated in the minor heap. *)
let rec build n = if n = 0 then [] else n :: build (n - 1)

let work rounds =
  let before = Gc.minor_words () in
  let sum = ref 0 in
  for _ = 1 to rounds do
    sum := !sum + List.length (Sys.opaque_identity (build 100))
  done;
  let words = Gc.minor_words () -. before in
  (!sum, words)

let () =
  let n = int_of_string Sys.argv.(1) and rounds = int_of_string Sys.argv.(2) in
  let domains =
    List.init n (fun _ ->
        Domain.spawn (fun () ->
            let sum, words = work rounds in
            ((Domain.self () :> int), sum, words)))
  in
  List.iter
    (fun d ->
      let id, sum, words = Domain.join d in
      Printf.printf "%d %d %.0f\n" id sum words)
    domains
