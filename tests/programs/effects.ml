(* A generator on a fiber, resumed from two places. *)
open Effect
open Effect.Deep
type _ Effect.t += Yield : int list -> unit Effect.t
let rec build n = if n = 0 then [] else n :: build (n - 1)
let[@inline never] in_generator i = Sys.opaque_identity (build (10 + (i land 3)))
let generator () = for i = 1 to 20000 do perform (Yield (in_generator i)) done
type step = Done | More of int * (unit -> step)
let start () =
  match_with generator ()
    { retc = (fun () -> Done);
      exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
          match e with
          | Yield l -> Some (fun (k : (a, step) continuation) -> More (List.length l, fun () -> continue k ()))
          | _ -> None) }
let[@inline never] resume_here k = k ()
let[@inline never] resume_there k = k ()
let () =
  let rec go sum i = function
    | Done -> sum
    | More (n, k) -> go (sum + n) (i + 1) (if i land 1 = 0 then resume_here k else resume_there k)
  in
  Printf.printf "%d\n" (go 0 0 (start ()))
