;; Memory that grows inside of loops: a stack of numbers whose room is looked up anew, and an attempt beyond the limit
;; test: 300000
;; bench: 3000000
;; restartable: no
(module
  (memory (export "memory") 1 64)

  ;; Pushes at a place; asks for a page if it lies beyond the end. Without room the last place is used again.
  (func $push (param $at i32) (param $value i32) (result i32)
    (if (i32.gt_u (i32.add (local.get $at) (i32.const 4)) (i32.mul (memory.size) (i32.const 65536)))
      (then
        (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1))
          (then (local.set $at (i32.sub (local.get $at) (i32.const 4)))))))
    (i32.store (local.get $at) (local.get $value))
    (i32.add (local.get $at) (i32.const 4)))

  (func (export "run") (param $count i32) (result i64)
    (local $i i32) (local $top i32) (local $sum i64) (local $end i32)
    (block $pushed
      (loop $next
        (br_if $pushed (i32.ge_u (local.get $i) (local.get $count)))
        (local.set $top (call $push (local.get $top) (i32.mul (local.get $i) (local.get $i))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    ;; The same in one loop: a page more in every 1000th iteration, all new pages filled, their size read each time.
    (local.set $i (i32.const 0))
    (block $grown
      (loop $next
        (br_if $grown (i32.ge_u (local.get $i) (local.get $count)))
        (if (i32.eqz (i32.rem_u (local.get $i) (i32.const 1000)))
          (then (drop (memory.grow (i32.const 1)))))
        (local.set $end (i32.mul (memory.size) (i32.const 65536)))
        (i32.store (i32.sub (local.get $end) (i32.add (i32.const 4)
            (i32.mul (i32.const 4) (i32.rem_u (local.get $i) (i32.const 1000)))))
          (local.get $i))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.set $i (i32.const 0))
    (block $summed
      (loop $next
        (br_if $summed (i32.ge_u (local.get $i) (i32.mul (memory.size) (i32.const 65536))))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load32_u (local.get $i))))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br $next)))
    (i64.add (local.get $sum) (i64.extend_i32_u (memory.size)))))
