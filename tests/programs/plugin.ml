let[@inline never] rec made_in_plugin n = if n = 0 then [] else string_of_int n :: made_in_plugin (n - 1)
let () =
  Plugin_api.hook := fun n ->
    let sum = ref 0 in
    for _ = 1 to n do sum := !sum + List.length (Sys.opaque_identity (made_in_plugin 50)) done;
    !sum
