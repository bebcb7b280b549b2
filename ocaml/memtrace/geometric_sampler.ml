type t =
  { rand : Random.State.t
  ; log1m_rate : float (* log (1 - rate) < 0; -inf for rate 1 *)
  }

let make ?(rand = Random.State.make [| 42 |]) ~sampling_rate () =
  if not (sampling_rate > 0. && sampling_rate <= 1.)
  then invalid_arg "Geometric_sampler.make: the rate must lie in (0, 1]";
  { rand; log1m_rate = Float.log1p (-.sampling_rate) }

let copy ?rand t =
  let rand =
    match rand with
    | Some rand -> rand
    | None -> Random.State.copy t.rand
  in
  { t with rand }

(* By inversion: with u uniform in (0, 1], 1 + floor (log u / log (1 - rate)) has the distribution. *)
let draw t =
  let u = 1. -. Random.State.float t.rand 1. in
  let gap = Float.log u /. t.log1m_rate in
  if gap < 4e18 then 1 + int_of_float gap else max_int
