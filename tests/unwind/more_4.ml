let run basics zigzag _down =
  let t = Thread.create (fun () -> basics (); ignore (zigzag 4)) () in
  Thread.join t
