(** Gaps between samples when each unit is sampled with a fixed probability, independently: a random integer in
    1, 2, ... with P(k) = (1 - rate)^(k-1) rate, mean 1 / rate. *)

type t

(** [rand]: the source of randomness; without it the gaps are the same in every run.
    @raise Invalid_argument unless the rate lies in (0, 1]. *)
val make : ?rand:Random.State.t -> sampling_rate:float -> unit -> t

(** The same rate and state; or [rand] for its own randomness. *)
val copy : ?rand:Random.State.t -> t -> t

val draw : t -> int
