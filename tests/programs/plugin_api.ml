let hook : (int -> int) ref = ref (fun _ -> 0)
