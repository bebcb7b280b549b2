open Effect
open Effect.Deep

type _ Effect.t += Ask : int -> int Effect.t

(* Handlers within handlers: each level is a fiber of its own. *)
let rec nested down n =
  if n = 0 then down 5 + perform (Ask 1)
  else
    match_with (fun () -> nested down (n - 1) + perform (Ask n)) ()
      { retc = (fun x -> ignore (down 2); x);
        exnc = raise;
        effc = (fun (type a) (e : a Effect.t) ->
          match e with
          | Ask k -> Some (fun (c : (a, _) continuation) -> ignore (down 1); continue c k)
          | _ -> None) }

(* A fiber that is resumed from elsewhere, and calls back through C. *)
let generator inner =
  let saved = ref None in
  let go () =
    match_with (fun () -> for i = 1 to 5 do ignore (perform (Ask i)); ignore (inner 2) done) ()
      { retc = (fun () -> saved := None);
        exnc = raise;
        effc = (fun (type a) (e : a Effect.t) ->
          match e with
          | Ask k -> Some (fun (c : (a, unit) continuation) -> saved := Some (fun () -> continue c k))
          | _ -> None) } in
  go ();
  let rec resume depth = match !saved with
    | None -> ()
    | Some f -> if depth = 0 then f () else resume (depth - 1) in
  for i = 0 to 5 do resume i done

(* Inside a callback from C the runtime hides the fibers below; libgcc follows a null pointer there. *)
external alone : bool -> unit = "stub_alone"
let hidden zigzag =
  alone true;
  generator zigzag;
  alone false

let run basics zigzag down =
  ignore (nested down 6);
  generator down;
  hidden zigzag;
  let t = Thread.create (fun () -> ignore (nested down 3); basics ()) () in
  Thread.join t;
  let d = Domain.spawn (fun () -> ignore (zigzag 4); ignore (nested down 4); generator down; basics ()) in
  Domain.join d
