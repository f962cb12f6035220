//! One rule of the scheduler a test.

use crate::script::check;

#[test]
fn an_idle_lane_gets_rows_at_once_and_full_when_they_fill_a_batch() {
    check(
        "
        > 0 start 1
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        > 10 arrive 0 0:3 1:4
        dispatch 0 to 0: 0/0:3 0/1:4 (7 rows, 7 bytes, Idle, oldest 10, finish 10)
        > 20 complete 0 0 70
        > 30 arrive 0 1:10
        dispatch 1 to 0: 0/1:10 (10 rows, 10 bytes, Full, oldest 30, finish 130)
        ",
    );
}
