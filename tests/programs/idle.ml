let () = print_string "idle\n"
