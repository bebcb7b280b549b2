(* As programs that use memtrace are written. *)
let () = Memtrace.trace_if_requested ~context:"written for memtrace" ()

module Table = struct
  let kept : (int, string) Hashtbl.t = Hashtbl.create 16

  let fill n =
    for i = 1 to n do
      Hashtbl.replace kept (i mod 1000) (String.make (10 + (i mod 50)) 'x')
    done
end

let () =
  Table.fill 200_000;
  let tokens = ref [] in
  for i = 1 to 10_000 do
    match Memtrace.External.alloc ~bytes:4096 with
    | None -> ()
    | Some token -> if i mod 2 = 0 then Memtrace.External.free token else tokens := token :: !tokens
  done;
  List.iter Memtrace.External.free !tokens;
  print_string (match Sys.getenv_opt "MEMTRACE" with None -> "cleared" | Some _ -> "still set");
  print_newline ()
