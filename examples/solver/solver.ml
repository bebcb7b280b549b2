(* A small solver with a pool of workers, as an example of a program whose memory is worth a look.

     solver [--workers N] [--board N] [--cover N]

   Two kinds of work wait in one queue, and each worker (a domain of its own) takes the next task when it has done one:

   - Queens: all ways to put N queens on a board, by search with a persistent set of free columns. A task is a
     prefix of the first rows. What is learnt about positions near the bottom is kept in a memo table.
   - Cover: how many ways there are to fill a box with dominoes, row profile after row profile; every profile seen is
     kept in a table that all tasks of one width share.

   The memory has the three kinds of life that real programs have: most blocks die at once (lists of the search), some
   live as long as a task, and the tables stay until the end. It uses nothing but the standard library, and knows
   nothing of profilers. *)

(* ---- work queue: a mutex, a condition, and an end ---- *)

module Pool = struct
  type task = { name : string; run : unit -> int }

  type t = {
    lock : Mutex.t;
    ready : Condition.t;
    tasks : task Queue.t;
    mutable closed : bool;
    mutable results : (string * int) list;
  }

  let create () =
    { lock = Mutex.create (); ready = Condition.create (); tasks = Queue.create ();
      closed = false; results = [] }

  let submit pool task =
    Mutex.protect pool.lock (fun () ->
        Queue.push task pool.tasks;
        Condition.signal pool.ready)

  let close pool =
    Mutex.protect pool.lock (fun () ->
        pool.closed <- true;
        Condition.broadcast pool.ready)

  let next pool =
    Mutex.protect pool.lock (fun () ->
        while Queue.is_empty pool.tasks && not pool.closed do
          Condition.wait pool.ready pool.lock
        done;
        Queue.take_opt pool.tasks)

  let finish pool task result =
    Mutex.protect pool.lock (fun () -> pool.results <- (task.name, result) :: pool.results)

  let rec worker pool =
    match next pool with
    | None -> ()
    | Some task ->
        finish pool task (task.run ());
        worker pool
end

(* ---- N queens ---- *)

module Queens = struct
  module Columns = Set.Make (Int)

  (* What is left to do, as far as it decides the number of solutions: the rows to go, the free columns, and the
     diagonals that run into those rows. *)
  type position = { rows : int; free : int list; down : int list; up : int list }

  type memo = { lock : Mutex.t; table : (position, int) Hashtbl.t }

  let new_memo () = { lock = Mutex.create (); table = Hashtbl.create 1024 }
  let recall memo position = Mutex.protect memo.lock (fun () -> Hashtbl.find_opt memo.table position)

  let remember memo position count =
    Mutex.protect memo.lock (fun () -> Hashtbl.replace memo.table position count)

  let move n diagonals step = List.filter (fun c -> c >= 0 && c < n) (List.map (fun c -> c + step) diagonals)

  let place n ~free ~down ~up column =
    ( Columns.remove column free,
      move n (column :: down) 1,
      move n (column :: up) (-1) )

  (* Positions with few rows to go occur again and again: those are worth remembering. *)
  let worth_keeping = 5

  let rec count memo n rows free down up =
    if rows = 0 then 1
    else if rows <> worth_keeping then search memo n rows free down up
    else
      let key = { rows; free = Columns.elements free; down; up } in
      match recall memo key with
      | Some known -> known
      | None ->
          let found = search memo n rows free down up in
          remember memo key found;
          found

  and search memo n rows free down up =
    Columns.fold
      (fun column total ->
        if List.mem column down || List.mem column up then total
        else
          let free, down, up = place n ~free ~down ~up column in
          total + count memo n (rows - 1) free down up)
      free 0

  let tasks n =
    let memo = new_memo () in
    let all = Columns.of_list (List.init n Fun.id) in
    List.concat_map
      (fun first ->
        let free, down, up = place n ~free:all ~down:[] ~up:[] first in
        List.filter_map
          (fun second ->
            if List.mem second down || List.mem second up then None
            else
              Some
                { Pool.name = "queens";
                  run =
                    (fun () ->
                      let free, down, up = place n ~free ~down ~up second in
                      count memo n (n - 2) free down up) })
          (Columns.elements free))
      (List.init n Fun.id)
end

(* ---- dominoes ---- *)

module Cover = struct
  (* The numbers of ways outgrow machine words; we count modulo a prime. *)
  let modulus = 1_000_000_007

  (* A profile tells which cells of the next row are taken already. *)
  type profile = string

  type memo = { lock : Mutex.t; successors : (profile, profile list) Hashtbl.t }

  let new_memo () = { lock = Mutex.create (); successors = Hashtbl.create 256 }

  (* All profiles of the row below, when this row is filled up. *)
  let rec fill profile cell below =
    if cell >= String.length profile then [ String.concat "" (List.rev below) ]
    else if profile.[cell] = '#' then fill profile (cell + 1) ("." :: below)
    else
      let upright = fill profile (cell + 1) ("#" :: below) in
      let flat =
        if cell + 1 < String.length profile && profile.[cell + 1] = '.' then
          fill profile (cell + 2) ("." :: "." :: below)
        else []
      in
      List.rev_append flat upright

  let successors memo profile =
    match Mutex.protect memo.lock (fun () -> Hashtbl.find_opt memo.successors profile) with
    | Some known -> known
    | None ->
        let found = fill profile 0 [] in
        Mutex.protect memo.lock (fun () -> Hashtbl.replace memo.successors profile found);
        found

  module Counts = Map.Make (String)

  let step memo counts =
    Counts.fold
      (fun profile ways next ->
        List.fold_left
          (fun next below ->
            Counts.update below
              (fun old -> Some ((Option.value old ~default:0 + ways) mod modulus))
              next)
          next (successors memo profile))
      counts Counts.empty

  let count memo ~width ~height =
    let empty = String.make width '.' in
    let rec go row counts = if row = 0 then counts else go (row - 1) (step memo counts) in
    Option.value (Counts.find_opt empty (go height (Counts.singleton empty 1))) ~default:0

  let tasks widest =
    List.concat_map
      (fun width ->
        let memo = new_memo () in
        List.init 8 (fun i ->
            let height = 4 + (2 * i) in
            { Pool.name = (if width = 8 && height = 8 then "chess board" else "cover");
              run = (fun () -> count memo ~width ~height) }))
      (List.init (widest - 4) (fun i -> i + 5))
end

(* ---- *)

let () =
  let workers = ref 4 and board = ref 12 and cover = ref 13 in
  Arg.parse
    [ ("--workers", Arg.Set_int workers, "N domains that work (4)");
      ("--board", Arg.Set_int board, "N queens on a board of N x N (12)");
      ("--cover", Arg.Set_int cover, "N widest box to fill with dominoes (13)") ]
    (fun extra -> raise (Arg.Bad ("unexpected argument " ^ extra)))
    "solver [--workers N] [--board N] [--cover N]";
  let pool = Pool.create () in
  let domains = List.init !workers (fun _ -> Domain.spawn (fun () -> Pool.worker pool)) in
  let rec interleave a b =
    match (a, b) with x :: a, y :: b -> x :: y :: interleave a b | rest, [] | [], rest -> rest
  in
  List.iter (Pool.submit pool) (interleave (Queens.tasks !board) (Cover.tasks !cover));
  Pool.close pool;
  List.iter Domain.join domains;
  let sum name =
    List.fold_left (fun total (n, r) -> if n = name then total + r else total) 0 pool.Pool.results
  in
  Printf.printf "%d tasks done by %d workers\n" (List.length pool.Pool.results) !workers;
  Printf.printf "%d ways to place %d queens\n" (sum "queens") !board;
  Printf.printf "%d ways to cover a chess board with dominoes\n" (sum "chess board")
